/** An option that nobody knows is a mistake in its name, and would do nothing: a run would not be durable, a limit not there. */
import { ConfigurationError } from './errors.ts';

/** Names of options with every one of them in it: the compiler asks for what is missing. */
export type OptionNames<Options> = { readonly [Name in keyof Options]-?: true };

/** Types say the same; plain JavaScript does not read them. @throws synchronously LOUSHO_CONFIG_INVALID naming the option and those that there are */
export function requireKnownOptions<Options>(
  prefix: string,
  given: object,
  names: OptionNames<Options>,
): void {
  for (const [name, got] of Object.entries(given)) {
    if (Object.hasOwn(names, name) || got === undefined) continue;
    // Not with what was given: under a mistyped name it may be a secret, and errors are logged.
    const want = `one that there is: ${Object.keys(names).join(', ')}`;
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option: `${prefix}${name}`, want });
  }
}
