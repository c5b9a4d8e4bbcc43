"""Verdict and history to advice: budgets, progress, modes. Knows no scheduler and no clock."""
