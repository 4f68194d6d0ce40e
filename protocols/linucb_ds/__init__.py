"""LinUCB-DS and SpectralUCB-DS (Ciucanu, Delabrouille, Lafourcade and Soare 2020): classic, and on secret shares."""
