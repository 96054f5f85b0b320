"""How the engine's hot seams are done, apart from what they mean."""
