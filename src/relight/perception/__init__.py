"""Raw signals to findings: a streaming fold. Knows neither the scheduler nor policy."""
