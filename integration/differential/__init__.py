"""Differential test: the same random request streams against two servers, every answer compared."""
