"""SAMBA: owners of one arm each, and a cloud that chooses among them: as published, and on shares."""
