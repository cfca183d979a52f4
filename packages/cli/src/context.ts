/** What a command works with: its options that all commands have, the store, the agents, output, time, and Ctrl-C. */
import type { AgentStore, CheckpointStore, Clock } from '@lousho/contract';
import type { Agent } from '@lousho/core';
import path from 'node:path';
import { CliError } from './cli-error.ts';
import { confirm } from './confirm.ts';
import { loadConfig, type LoadedConfig } from './load-config.ts';
import { textStream, type Io } from './node-io.ts';
import { openStore, requireStore, type OpenedStore } from './open-store.ts';
import { Output } from './terminal/output.ts';

/** The options of every command, as commander reads them. */
export interface GlobalOptions {
  readonly store?: string | undefined;
  readonly config?: string | undefined;
  readonly agent?: string | undefined;
  readonly cwd?: string | undefined;
  readonly json?: boolean | undefined;
  readonly quiet?: boolean | undefined;
  readonly yes?: boolean | undefined;
  /** `false`: `--no-color`. */
  readonly color?: boolean | undefined;
}

export class Context {
  /** Absolute; `-C`. What is relative, is relative to it. */
  readonly cwd: string;
  readonly out: Output;
  readonly clock: Clock;
  readonly io: Io;
  readonly #options: GlobalOptions;
  readonly #opened: AgentStore[] = [];
  #config: Promise<LoadedConfig | undefined> | undefined;
  #store: Promise<OpenedStore> | undefined;
  #interrupts: AbortController | undefined;

  constructor(options: GlobalOptions, io: Io) {
    this.#options = options;
    this.io = io;
    this.cwd = path.resolve(io.cwd, options.cwd ?? '.');
    this.clock = io.clock;
    const noColor = options.color === false;
    this.out = new Output({
      json: options.json === true,
      quiet: options.quiet === true,
      stdout: textStream(io.stdout, io.env, noColor),
      stderr: textStream(io.stderr, io.env, noColor),
    });
  }

  /** Whether `--agent` names one. */
  get hasAgentOption(): boolean {
    return this.#options.agent !== undefined;
  }

  get nowMs(): number {
    return this.clock.wallMs();
  }

  /** Whether there is one to open: `--store`, or that of the configuration. @throws CliError */
  async namesStore(): Promise<boolean> {
    return this.#options.store !== undefined || (await this.config())?.store !== undefined;
  }

  /** `--store`, else that of the configuration. Opened once, closed at the end, never created. @throws CliError; what the store throws */
  async store(): Promise<AgentStore> {
    return (await this.openedStore()).store;
  }

  /** The same with its place. `create`: one that is not there is created, for a command that fills it. */
  async openedStore({ create = false }: { readonly create?: boolean } = {}): Promise<OpenedStore> {
    this.#store ??= this.#openStore(create);
    return this.#store;
  }

  /** @throws CliError LOUSHO_CLI_UNSUPPORTED; what `store` throws */
  async checkpoints(): Promise<CheckpointStore> {
    const { checkpoints } = await this.store();
    if (checkpoints === undefined) throw new CliError('LOUSHO_CLI_UNSUPPORTED', 'The store keeps no runs.');
    return checkpoints;
  }

  /** Another store than that of `store()`, for example where to copy to. Closed at the end. @throws what `openStore` throws */
  async otherStore(spec: string, { create }: { readonly create: boolean }): Promise<OpenedStore> {
    const opened = await openStore(spec, { cwd: this.cwd, create });
    this.#opened.push(opened.store);
    return opened;
  }

  /** All of the configuration, by the names in it. @throws CliError */
  async agents(): Promise<ReadonlyMap<string, Agent>> {
    const agents = Object.entries((await this.config())?.agents ?? {});
    if (agents.length === 0)
      throw new CliError('LOUSHO_CLI_USAGE', 'This needs the agent, which a store does not hold.', {
        hint: 'Export it from lousho.config.ts: export default defineConfig({ store, agents: { name: agent } }).',
      });
    return new Map(agents);
  }

  /**
   * The one of `--agent`, else the one whose name the run has, else the only one. `runAgentName` is `agentName` of the run.
   * @throws CliError LOUSHO_CLI_USAGE, LOUSHO_CLI_CONFIG_INVALID
   */
  async agent(runAgentName?: string): Promise<Agent> {
    const agents = await this.agents();
    const wanted = this.#options.agent;
    const names = [...agents.keys()].join(', ');
    if (wanted !== undefined) {
      const agent = agents.get(wanted) ?? [...agents.values()].find(({ name }) => name === wanted);
      if (agent !== undefined) return agent;
      throw new CliError('LOUSHO_CLI_USAGE', `The configuration has no agent "${wanted}".`, {
        hint: `It has: ${names}.`,
      });
    }
    const [first, ...others] = agents.values();
    const ofRun = [...agents.values()].find(({ name }) => name === runAgentName);
    const agent = ofRun ?? (others.length === 0 ? first : undefined);
    if (agent !== undefined) return agent;
    throw new CliError('LOUSHO_CLI_USAGE', 'The configuration has several agents.', {
      hint: `Say which one with --agent: ${names}.`,
    });
  }

  /** `undefined` when there is none. @throws CliError */
  async config(): Promise<LoadedConfig | undefined> {
    this.#config ??= loadConfig(this.cwd, this.#options.config);
    return this.#config;
  }

  /** A command to copy: with the store that this one was given. */
  command(...words: readonly string[]): string {
    const { store } = this.#options;
    return ['lousho', ...words, ...(store === undefined ? [] : ['--store', store])].map(quoted).join(' ');
  }

  /** Before anything is destroyed. @throws CliError LOUSHO_CLI_NEEDS_YES, LOUSHO_CLI_DECLINED, LOUSHO_CLI_INTERRUPTED */
  async confirm(question: string): Promise<void> {
    await confirm(question, { io: this.io, yes: this.#options.yes === true });
  }

  /**
   * From now on the first Ctrl-C aborts this signal instead of ending the process, and the command ends in its own time. A second one ends
   * the process. What the command then returns does not matter: it exits with 130.
   */
  takeInterrupts(): AbortSignal {
    this.#interrupts ??= new AbortController();
    return this.#interrupts.signal;
  }

  /** For `main`. Whether somebody listens; `false` again at the second one. */
  interrupt(): boolean {
    if (this.#interrupts === undefined || this.#interrupts.signal.aborted) return false;
    this.#interrupts.abort();
    return true;
  }

  get wasInterrupted(): boolean {
    return this.#interrupts?.signal.aborted === true;
  }

  /** For `main`. Closes what was opened. */
  async close(): Promise<void> {
    for (const store of this.#opened.splice(0)) await store.close?.();
  }

  async #openStore(create: boolean): Promise<OpenedStore> {
    const { store: spec } = this.#options;
    if (spec !== undefined) return this.otherStore(spec, { create });
    const config = await this.config();
    if (typeof config?.store === 'string') {
      const opened = await openStore(config.store, { cwd: path.dirname(config.file), create });
      this.#opened.push(opened.store);
      return opened;
    }
    if (config?.store !== undefined) {
      const store = requireStore(config.store, `The store of "${config.file}"`);
      this.#opened.push(store);
      return { store, place: undefined };
    }
    throw new CliError('LOUSHO_CLI_USAGE', 'No store was given.', {
      hint: 'Give --store sqlite:./jobs.db or --store file:./folder, or name it in lousho.config.ts.',
    });
  }
}

/** For a POSIX shell, where it has to be. */
function quoted(word: string): string {
  return /^[\w@%+=:,./~<>-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
