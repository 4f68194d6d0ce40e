"""SAMBA on shares: owners are clients of the computing parties."""
