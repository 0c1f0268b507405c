"""Recipes of the images that sessions run in."""
