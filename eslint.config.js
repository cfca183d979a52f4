import { builtinModules } from 'node:module';
import nx from '@nx/eslint-plugin';
import { createNodeResolver, importX } from 'eslint-plugin-import-x';
import tseslint from 'typescript-eslint';

const everyPackage = ['packages/*/src/**/*.ts'];

// These run wherever JavaScript runs, but for their entry points `/node`.
const neutralPackages = [
  'contract',
  'executor',
  'core',
  'http',
  'mcp',
  'otel',
  'provider-ai-sdk',
  'store-kit',
  'store-kv',
  'store-memory',
  'testing',
].map(sourcesOf);
const nodeEntryPoints = ['packages/*/src/node.ts', 'packages/*/src/node/**/*.ts'];

// The only files that may ask for the time, for chance or for the state of a process. All others take these from
// their ports, so that a test can decide them.
const ports = ['ports', 'clock', 'owner-liveness'].map((name) => `packages/*/src/**/*${name}*.ts`);

const usePorts = 'Take time, timers, chance and process facts from the ports (`Ports` of @lousho/contract).';
const runsEverywhere =
  'This package runs on every platform. Put what only Node has behind a port or into a store.';
const nameExports = 'Name each export: a star hides what is public.';

const timers = asking(usePorts, ['setTimeout', 'setInterval', 'setImmediate']);
const nodeGlobals = asking(runsEverywhere, ['process', 'Buffer', 'require', '__dirname', '__filename']);

export default tseslint.config(
  // The seed snippets are kept as their users would have written them.
  { ignores: ['**/dist/**', '**/coverage/**', '**/.nx/**', '**/.cache/**', '**/seed-snippets/**'] },
  ...tseslint.configs.recommendedTypeChecked,
  { languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } } },
  { files: ['**/*.js', '**/*.mjs'], ...tseslint.configs.disableTypeChecked },
  {
    rules: {
      'no-empty': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', ignoreRestSiblings: true }],
      // `async` without `await` turns what a function throws into a rejection: in-memory stores rely on it.
      '@typescript-eslint/require-await': 'off',
    },
  },
  {
    // Vitest's asymmetric matchers, such as `expect.any`, are typed `any`.
    files: ['**/test/**/*.ts'],
    rules: { '@typescript-eslint/no-unsafe-assignment': 'off' },
  },

  // Which package may import what. Tests may import anything.
  {
    files: everyPackage,
    plugins: { '@nx': nx },
    rules: {
      '@nx/enforce-module-boundaries': [
        'error',
        {
          enforceBuildableLibDependency: false,
          banTransitiveDependencies: true,
          depConstraints: [
            layer('contract', { imports: [], external: ['zod'] }),
            layer('executor', { imports: ['contract'], external: ['zod'] }),
            layer('core', { imports: ['contract', 'executor'], external: ['croner'] }),
            layer('testing', { imports: ['contract'], external: [] }),
            layer('store', { imports: ['contract'] }),
            layer('provider', { imports: ['contract'], external: [] }),
            layer('http', { imports: ['contract', 'core'], external: [] }),
            layer('telemetry', { imports: ['contract'], external: ['@opentelemetry/api'] }),
            layer('cli', {
              imports: ['contract', 'core', 'store', 'testing'],
              external: ['@clack/prompts', 'commander', 'jiti', 'picocolors'],
            }),
            layer('tools', { imports: ['contract'], external: ['zod'] }),
            { sourceTag: 'medium:any', onlyDependOnLibsWithTags: ['*'], allowedExternalImports: [] },
            { sourceTag: 'medium:memory', onlyDependOnLibsWithTags: ['*'], allowedExternalImports: [] },
            { sourceTag: 'medium:kv', onlyDependOnLibsWithTags: ['*'], allowedExternalImports: [] },
            { sourceTag: 'medium:file', onlyDependOnLibsWithTags: ['*'], allowedExternalImports: [] },
            {
              sourceTag: 'medium:sqlite',
              onlyDependOnLibsWithTags: ['*'],
              allowedExternalImports: ['better-sqlite3'],
            },
          ],
        },
      ],
    },
  },
  {
    files: everyPackage,
    plugins: { 'import-x': importX },
    settings: {
      'import-x/extensions': ['.ts'],
      'import-x/parsers': { '@typescript-eslint/parser': ['.ts'] },
      'import-x/resolver-next': [createNodeResolver({ extensions: ['.ts'] })],
    },
    rules: { 'import-x/no-cycle': ['error', { ignoreExternal: true }] },
  },
  {
    files: neutralPackages,
    ignores: nodeEntryPoints,
    rules: {
      'no-restricted-imports': [
        'error',
        {
          paths: asking(runsEverywhere, builtinModules),
          patterns: [{ regex: '^node:', message: runsEverywhere }],
        },
      ],
    },
  },

  // Of several blocks that set one rule for a file, the last counts: these go from wide to narrow.
  {
    files: everyPackage,
    rules: {
      'no-restricted-syntax': [
        'error',
        { selector: 'ExportAllDeclaration', message: nameExports },
        { selector: 'NewExpression[callee.name="Date"][arguments.length=0]', message: usePorts },
      ],
      'no-restricted-properties': [
        'error',
        ...properties('Date', ['now']),
        ...properties('Math', ['random']),
        ...properties('performance', ['now']),
        ...properties('crypto', ['randomUUID', 'getRandomValues']),
        ...properties('process', ['kill']),
        ...properties('globalThis', ['setTimeout', 'setInterval', 'setImmediate']),
      ],
      'no-restricted-globals': ['error', ...timers],
    },
  },
  {
    files: neutralPackages,
    ignores: nodeEntryPoints,
    rules: { 'no-restricted-globals': ['error', ...timers, ...nodeGlobals] },
  },
  {
    files: ports,
    rules: {
      'no-restricted-syntax': ['error', { selector: 'ExportAllDeclaration', message: nameExports }],
      'no-restricted-properties': 'off',
      'no-restricted-globals': 'off',
    },
  },
);

function sourcesOf(name) {
  return `packages/${name}/src/**/*.ts`;
}

function layer(name, { imports, external }) {
  return {
    sourceTag: `layer:${name}`,
    onlyDependOnLibsWithTags: imports.map((other) => `layer:${other}`),
    ...(external && { allowedExternalImports: external }),
  };
}

function asking(message, names) {
  return names.map((name) => ({ name, message }));
}

function properties(object, names) {
  return names.map((property) => ({ object, property, message: usePorts }));
}
