/** The shop of `stores.ts` with a configuration beside it, whose agent can go on; what its tools did is written down. */
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { lousho, startLousho } from './cli-process.ts';
import { runCli, type CliResult, type RunCliOptions } from './run-cli.ts';
import { newFolder, openShop, type StoreKind } from './stores.ts';

export interface ActingShop {
  readonly folder: string;
  readonly kind: StoreKind;
  /** In this process. */
  run(args: readonly string[], options?: RunCliOptions): Promise<CliResult>;
  /** In a process of its own. */
  start(args: readonly string[]): CliResult;
  /** The same, beside others. */
  begin(args: readonly string[]): Promise<CliResult>;
  /** Names of the tools that did something, in their order. */
  effects(): readonly string[];
}

export async function givenShop(kind: StoreKind): Promise<ActingShop> {
  const folder = packagesFolder();
  fs.writeFileSync(path.join(folder, 'lousho.config.ts'), configText(kind));
  await openShop(kind, folder);
  const log = path.join(folder, 'effects.log');
  return {
    folder,
    kind,
    run: (args, options) => runCli(args, { cwd: folder, ...options }),
    start: (args) => lousho(args, { cwd: folder }),
    begin: (args) => ended(startLousho(args, { cwd: folder })),
    effects: () => (fs.existsSync(log) ? fs.readFileSync(log, 'utf8').trim().split('\n') : []),
  };
}

async function ended(child: ReturnType<typeof startLousho>): Promise<CliResult> {
  const [stdout, stderr, [exitCode]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number]>,
  ]);
  return { exitCode, stdout, stderr };
}

/** A folder of a user who has installed the packages. */
export function packagesFolder(): string {
  const folder = newFolder();
  fs.symlinkSync(
    path.resolve(import.meta.dirname, '../../../../node_modules'),
    path.join(folder, 'node_modules'),
  );
  return folder;
}

/** The approval that this run waits for. */
export async function waitingId(shop: ActingShop, runId = 'order-7'): Promise<string> {
  const store = shop.kind.open(shop.folder);
  const records = (await store.approvals?.list({ sessionId: runId })) ?? [];
  await store.close?.();
  const [first] = records;
  if (first === undefined) throw new Error(`${runId} waits for nothing`);
  return first.id;
}

/** The same agent as in `stores.ts`, so that nothing has drifted; the carrier is up again. In TypeScript, which is loaded anew for each command. */
function configText({ name }: StoreKind): string {
  const store =
    name === 'sqlite'
      ? "import { SqliteStore } from '@lousho/store-sqlite';\nconst store = new SqliteStore(at('runs.db'));"
      : "import { fileStore } from '@lousho/store-file';\nconst store = fileStore(at('runs'));";
  return `
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createAgent, defineTool } from '@lousho/core';
import { mockModel } from '@lousho/testing';
const at = (file: string) => fileURLToPath(new URL(file, import.meta.url));
${store}
const tool = (name: string, more: object = {}) =>
  defineTool({
    name,
    description: name,
    input: { type: 'object' },
    execute: async (args, ctx) => {
      fs.appendFileSync(at('effects.log'), name + ' ' + JSON.stringify(args) + '\\n');
      if (process.env.SLOW_TOOL === name) await new Promise((resolve) => setTimeout(resolve, 500));
      return { done: true };
    },
    ...more,
  });
const shop = createAgent({
  name: 'shop',
  instructions: 'You run a shop.',
  provider: mockModel(['First.', 'Shipped.', 'Charged.', 'More.'], { answerBy: 'step' }),
  tools: [tool('charge_card', { needsApproval: true }), tool('ship'), tool('look_up')],
  store,
});
const asker = createAgent({ name: 'asker', provider: mockModel(['', 'Noted.'], { answerBy: 'step' }), askQuestion: true, store });
export default { store, agents: { shop, asker } };
`;
}
