/** The tools of an agent by name. A name that is taken twice is refused, never resolved by order. */
import { ConfigurationError, type Tool } from '@lousho/contract';

export class ToolRegistry {
  readonly #tools = new Map<string, Tool>();

  constructor(tools: readonly Tool[] = []) {
    for (const tool of tools) this.register(tool);
  }

  /** @throws synchronously LOUSHO_CONFIG_INVALID when the name is taken. */
  register(tool: Tool): this {
    if (typeof tool !== 'object' || tool === null || tool.inputSchema === undefined) {
      throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
        option: 'tools',
        got: tool,
        want: 'a list of tools made by defineTool',
      });
    }
    if (this.#tools.has(tool.name)) {
      throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
        option: 'tools',
        got: tool.name,
        want: 'a list in which each name stands once',
      });
    }
    this.#tools.set(tool.name, tool);
    return this;
  }

  get(name: string): Tool | undefined {
    return this.#tools.get(name);
  }

  has(name: string): boolean {
    return this.#tools.has(name);
  }

  /** In the order of registration. */
  list(): readonly Tool[] {
    return [...this.#tools.values()];
  }
}
