import type { Checkpoint } from '@lousho/contract';

export function firstStep(): Checkpoint;
export function nextStep(run: Checkpoint): Checkpoint;
