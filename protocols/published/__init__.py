"""What every published protocol has, once: participants, messages, sealing, Paillier."""
