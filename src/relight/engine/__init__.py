"""The one room that knows the pure rooms: step, replay, explain. No IO, no clock."""
