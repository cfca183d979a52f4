/** The end of a `switch` over a union: a member that is not handled is a type error, and a plain error at run time. */
export function assertNever(value: never): never {
  throw new Error(`Invariant: unexpected ${JSON.stringify(value)}`);
}
