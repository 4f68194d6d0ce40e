"""LinUCB-DS and SpectralUCB-DS on shares, arms shown to the computing parties or hidden from all."""
