/** Runs a scenario once for each store call and each effect of a tool, dying before and behind it, and says which crash broke what. */
import { runPass } from './crash-pass.ts';
import type { CrashPoint, CrashReport, CrashScenario } from './crash-scenario.ts';

/** One stuck point says it all; a few show whether it is the rule. More only cost time. */
const MAX_STUCK_POINTS = 3;

/**
 * A control run without a crash counts the calls and effects. Then, for each of them, before and after it: run until the process dies, restart on the
 * same data until `run` resolves, check. Rejects when the control run itself fails; a crash that breaks a promise is in the report.
 */
export async function crashSweep(scenario: CrashScenario): Promise<CrashReport> {
  const control = await runPass(scenario, {});
  if (control.problems.length > 0)
    throw new Error(`Without any crash: ${control.problems.join(' ')}`, { cause: control.error });
  const points = control.calls.flatMap((call): CrashPoint[] => [
    { call, when: 'before' },
    { call, when: 'after' },
  ]);
  const failures: { readonly point: CrashPoint; readonly message: string }[] = [];
  let stuckCount = 0;
  for (const point of points) {
    const { problems, isStuck } = await runPass(scenario, { crash: { point, control: control.journal } });
    if (isStuck) stuckCount += 1;
    const isGivenUp = stuckCount === MAX_STUCK_POINTS;
    const message = [...problems, ...(isGivenUp ? ['The points behind this one were not tried.'] : [])];
    if (problems.length > 0) failures.push({ point, message: message.join(' ') });
    if (isGivenUp) break;
  }
  return { points: points.length, failures };
}
