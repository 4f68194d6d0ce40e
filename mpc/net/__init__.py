"""Transports: the only place that knows sockets and torch.distributed."""
