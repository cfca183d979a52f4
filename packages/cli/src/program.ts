/** The commands, and the options that all of them have. */
import { Command } from 'commander';
import type { RunCommand } from './cli.ts';
import { registerCommands } from './commands.ts';
import type { GlobalOptions } from './context.ts';

export interface ProgramOptions {
  readonly version: string;
  readonly execute: (options: GlobalOptions, run: RunCommand<[]>) => Promise<void>;
}

export function buildProgram({ version, execute }: ProgramOptions): Command {
  const program = new Command('lousho')
    .description('See, decide and continue the runs of Lousho agents.')
    .version(version)
    .option('--store <place>', 'sqlite:./jobs.db, file:./folder, or a module that exports a store')
    .option('--config <file>', 'default: lousho.config.{ts,mts,mjs,js,cjs} in the folder')
    .option('--agent <name>', 'which agent of the configuration')
    .option('-C, --cwd <folder>', 'work in this folder')
    .option('--json', 'print data as JSON')
    .option('-q, --quiet', 'print data and errors only')
    .option('-y, --yes', 'do not ask before something is destroyed')
    .option('--no-color', 'print without colours')
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('Add --help to see how it is used.');
  registerCommands({
    program,
    group(name, description) {
      const found = program.commands.find((command) => command.name() === name);
      return found ?? program.command(name).description(description);
    },
    action<Args extends unknown[]>(run: RunCommand<Args>) {
      return (...given: [...Args, Command]) => {
        const command = given.at(-1) as Command;
        const args = given.slice(0, -1) as unknown as Args;
        return execute(command.optsWithGlobals<GlobalOptions>(), (context) => run(context, ...args));
      };
    },
  });
  return program;
}
