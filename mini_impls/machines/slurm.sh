#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#
# A mini, or a comparison, on the machines of a Slurm job: one torchrun on each, which
# starts a rank for each GPU (on machines without GPUs one, or $RANKS of them).
#
#   sbatch --gpus-per-node=8 mini_impls/machines/slurm.sh mini_impls.fsdp --backend nccl
#   sbatch mini_impls/machines/slurm.sh mini_impls.compare ddp --upstream torch
#
# The checkout, its environment and the fetched sources must be on every machine, as in a
# shared home. `--gpus-per-node` and the rest of sbatch's options go before the script.
set -eu
if [ $# -eq 0 ]; then
    echo "slurm.sh: got no module: expected one such as mini_impls.ddp" >&2
    exit 2
fi
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
exec srun torchrun \
    --nnodes "$SLURM_JOB_NUM_NODES" \
    --nproc-per-node "${RANKS:-${SLURM_GPUS_ON_NODE:-1}}" \
    --rdzv-backend c10d \
    --rdzv-id "$SLURM_JOB_ID" \
    --rdzv-endpoint "$first:${PORT:-29400}" \
    -m "$@"
