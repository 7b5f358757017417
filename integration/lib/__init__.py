"""Helpers shared by the integration harnesses."""
