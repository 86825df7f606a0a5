"""Rules in the e-graph engine: their language, their compilation, what runs beside them, what is left."""
