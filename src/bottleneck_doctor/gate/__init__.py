"""The gate, behind `doctor check`: whether one revision trains slower than another."""
