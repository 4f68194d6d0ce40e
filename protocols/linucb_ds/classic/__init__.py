"""LinUCB-DS and SpectralUCB-DS as published, with Paillier: four participants."""
