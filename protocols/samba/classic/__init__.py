"""SAMBA as published, with AES-GCM and Paillier: DC, Controller, Comp and the owners."""
