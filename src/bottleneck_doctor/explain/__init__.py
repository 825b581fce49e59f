"""A live session in; why the training is slow, as far as windows that explain can tell, out."""
