/** `lousho demo`: an agent is killed in the middle of a tool, another process goes on, a person approves. Ten seconds, no key, no network. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Checkpoint } from '@lousho/contract';
import { Option } from 'commander';
import type { Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { demoAgent, readLedger, storeFolder, DEMO_INPUT, DEMO_RUN } from '../demo/demo-agent.ts';
import { checkDemo, type Verdict } from '../demo/demo-check.ts';
import { demoWorker, runDemoProcess, type DemoProcessEnd } from '../demo/demo-process.ts';
import { exitCodes, type ExitCode } from '../exit-codes.ts';
import { accent, bad, dim, good, strong, warn, type Line } from '../terminal/styled-line.ts';

interface DemoOptions {
  readonly keep?: boolean;
  readonly worker?: string;
}

export function registerDemo(cli: Cli): void {
  cli.program
    .command('demo')
    .description('see an agent survive kill -9 and wait for an approval: ten seconds, no key, no network')
    .option('--keep', 'leave the store, to look at it with the other commands')
    .addOption(new Option('--worker <folder>').hideHelp())
    .action(cli.action((context, options: DemoOptions) => demo(context, options)));
}

/** 1 when something is not as it must be. */
async function demo(context: Context, { keep = false, worker }: DemoOptions): Promise<ExitCode> {
  if (worker !== undefined) {
    await demoWorker(worker);
    return exitCodes.ok;
  }
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'lousho-demo-'));
  try {
    const verdicts = await tellStory(context, folder);
    await report(context, verdicts);
    if (keep) context.out.note(`Look at it: lousho show ${DEMO_RUN} --store file:${storeFolder(folder)}`);
    return verdicts.every(({ ok }) => ok) ? exitCodes.ok : exitCodes.failure;
  } finally {
    if (!keep) fs.rmSync(folder, { recursive: true, force: true });
  }
}

async function tellStory(context: Context, folder: string): Promise<readonly Verdict[]> {
  const say = async (line: Line): Promise<void> => (context.out.json ? undefined : context.out.lines([line]));
  const signal = context.takeInterrupts();
  let talking = Promise.resolve();
  const onToolBegins = (tool: string, pid: number): void =>
    void (talking = talking.then(() => say([dim(`  ${pid}  `), accent(tool), ' …'])));
  const run = async (killIn?: string): Promise<DemoProcessEnd> => {
    const end = await runDemoProcess({ folder, killIn, onToolBegins, signal });
    await talking;
    return end;
  };

  await say([strong('agent  '), DEMO_INPUT]);
  const first = await run('ship_order');
  await say([bad('  ✗ '), `process ${first.pid} was killed with SIGKILL, in the middle of ship_order`]);
  await say(dim(`    the store holds ${heldBy(await storedRun(folder))}`));

  const second = await run();
  await say([warn('  … '), `process ${second.pid} went on from there, and waits for a person: refund`]);

  const agent = await demoAgent({ folder });
  const [request] = await agent.approvals.list();
  if (request === undefined) throw new Error('The demo has nothing to approve.');
  await say([good('  ✓ '), `you approve refund ${JSON.stringify(request.args)}, in a third process`]);
  const { text } = await agent.approvals.resolve({ id: request.id, approved: true, by: 'you' });
  await say([strong('agent  '), text]);
  return checkDemo(await storedRun(folder), readLedger(folder), first.pid);
}

async function report({ out }: Context, verdicts: readonly Verdict[]): Promise<void> {
  if (out.json) return out.document({ ok: verdicts.every(({ ok }) => ok), checks: verdicts });
  await out.lines(['', ...verdicts.map(({ ok, text }): Line => [ok ? good('✓ ') : bad('✗ '), text])]);
}

async function storedRun(folder: string): Promise<Checkpoint | undefined> {
  const { fileStore } = await import('@lousho/store-file');
  await using store = fileStore(storeFolder(folder));
  return (await store.checkpoints.load(DEMO_RUN)) ?? undefined;
}

function heldBy(run: Checkpoint | undefined): string {
  if (run === undefined) return 'nothing';
  const results = run.messages.filter(({ role }) => role === 'tool').length;
  return `${run.stepIndex} model responses and ${results} result; one call has none`;
}
