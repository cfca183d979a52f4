/** A workspace in a real temporary folder, with a folder beside it that nothing may touch. */
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Tool, ToolContext } from '@lousho/contract';
import { afterEach } from 'vitest';
import type { WorkspaceToolsOptions } from '../../src/options.ts';
import { WorkspaceCheckpoints } from '../../src/workspace-checkpoints.ts';
import { makeTools } from '../../src/workspace-tools.ts';
import type { WorkspaceInternals } from '../../src/workspace.ts';

export const SECRET = 'the secret outside of the workspace';

const made: string[] = [];
afterEach(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
});

export class TempWorkspace {
  readonly base: string;
  readonly root: string;
  readonly outside: string;
  readonly backups: string;

  constructor(files: Readonly<Record<string, string>> = {}) {
    this.base = realpathSync.native(mkdtempSync(path.join(tmpdir(), 'lousho-workspace-')));
    made.push(this.base);
    this.root = path.join(this.base, 'root');
    this.outside = path.join(this.base, 'outside');
    this.backups = path.join(this.base, 'backups');
    for (const folder of [this.root, this.outside]) mkdirSync(folder);
    writeFileSync(path.join(this.outside, 'file.txt'), SECRET);
    for (const [name, content] of Object.entries(files)) this.put(name, content);
  }

  at(name: string): string {
    return path.join(this.root, name);
  }
  put(name: string, content: string): void {
    mkdirSync(path.dirname(this.at(name)), { recursive: true });
    writeFileSync(this.at(name), content);
  }
  /** `undefined` for what does not exist. */
  read(name: string): string | undefined {
    return treeOf(this.root).get(name);
  }
  checkpoints(internals: WorkspaceInternals = {}): WorkspaceCheckpoints {
    return new WorkspaceCheckpoints({ root: this.root, dir: this.backups }, internals);
  }
  call<Result = unknown>(toolName: string, args: object, options: CallOptions = {}): Promise<Result> {
    const tools = makeTools({ root: this.root, ...options.tools }, options.internals ?? {});
    const tool = tools.find((each) => each.name === toolName);
    if (tool === undefined) throw new Error(`no tool ${toolName}`);
    return runTool<Result>(tool, args, options.ctx);
  }
}

export interface CallOptions {
  readonly tools?: Omit<WorkspaceToolsOptions, 'root'>;
  readonly internals?: WorkspaceInternals;
  readonly ctx?: Partial<ToolContext>;
}

let callCount = 0;

/** Every call is another one, unless `ctx.idempotencyKey` says which. */
export async function runTool<Result>(
  tool: Tool,
  args: object,
  ctx: Partial<ToolContext> = {},
): Promise<Result> {
  callCount += 1;
  const schema = tool.input as unknown as { parse(args: object): unknown };
  const whole: ToolContext = {
    toolCallId: `call-${callCount}`,
    toolName: tool.name,
    idempotencyKey: `key-${callCount}`,
    rerun: false,
    runId: 'run',
    step: 1,
    agentName: 'agent',
    messages: [],
    metadata: {},
    signal: new AbortController().signal,
    businessState: undefined,
    ...ctx,
  };
  return (await tool.execute(schema.parse(args), whole)) as Result;
}

/** Every entry below a folder: a file with its content, a link with its target, a folder as such. */
export function treeOf(folder: string): Map<string, string> {
  const tree = new Map<string, string>();
  const add = (names: readonly string[]): void => {
    for (const entry of readdirSync(path.join(folder, ...names), { withFileTypes: true })) {
      const inner = [...names, entry.name];
      const full = path.join(folder, ...inner);
      if (entry.isDirectory()) {
        tree.set(inner.join('/'), '(folder)');
        add(inner);
      } else if (entry.isSymbolicLink()) tree.set(inner.join('/'), `(link to ${readlinkSync(full)})`);
      else tree.set(inner.join('/'), entry.isFile() ? readFileSync(full, 'utf8') : '(other)');
    }
  };
  add([]);
  return tree;
}
