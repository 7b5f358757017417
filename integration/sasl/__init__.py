"""SASL and all other ways to prove who a client is."""
