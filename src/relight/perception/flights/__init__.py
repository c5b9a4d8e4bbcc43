"""NCCL's flight recorder: from the bytes of its dumps to the ranks that the others wait for."""
