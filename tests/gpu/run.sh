#!/usr/bin/env bash
# Runs the tests that need a CUDA device and prints what an examination measures there.
set -euo pipefail
cd "$(dirname "$0")/../.."
nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv
python -m pytest tests/gpu -rA -p no:cacheprovider -p no:benchmark "$@"
