/** All rules that need processes. */
import { killRules } from './kill-rules.ts';
import type { ProcessRule } from './process-world.ts';
import { raceRules } from './race-rules.ts';
import { stallRules } from './stall-rules.ts';

export const processRules: readonly ProcessRule[] = [...raceRules, ...killRules, ...stallRules];
