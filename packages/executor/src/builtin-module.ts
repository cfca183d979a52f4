/** A module of Node by its name at run time, so that no bundle for another platform asks for it; `undefined` elsewhere. */
export function builtinModule<Module>(name: string): Module | undefined {
  const { process } = globalThis as {
    readonly process?: { getBuiltinModule?(name: string): Module | undefined };
  };
  return process?.getBuiltinModule?.(name);
}
