/** The API reference: one page of Markdown an entry point, made from the types and their comments. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { Application, Comment, LogLevel } from 'typedoc';

const root = path.resolve(import.meta.dirname, '../..');

/**
 * Every entry point that a package publishes, but for wiring between our own packages:
 * `[['@lousho/core', 'packages/core/src/index.ts'], ...]`
 *
 * A name that several packages export is described with the first of them: its owner.
 */
export function entryPoints() {
  const owners = ['contract', 'executor', 'core'];
  const others = readdirSync(path.join(root, 'packages')).filter((folder) => !owners.includes(folder));
  return [...owners, ...others].flatMap((folder) => {
    const { name, private: isPrivate, exports = {} } = manifestOf(folder);
    if (isPrivate) return [];
    return Object.entries(exports)
      .filter(([entry, target]) => entry !== './wiring' && target['@lousho/source'] !== undefined)
      .map(([entry, target]) => [
        path.posix.join(name, entry),
        path.posix.join('packages', folder, target['@lousho/source']),
      ]);
  });
}

export async function writeApiPages(folder) {
  rmSync(folder, { recursive: true, force: true });
  const entries = entryPoints();
  // TypeDoc names a module after its file.
  const names = new Map(entries.map(([name, file]) => [file.replace(/(\/index)?\.ts$/, ''), name]));
  const app = await Application.bootstrapWithPlugins({
    plugin: ['typedoc-plugin-markdown'],
    outputs: [{ name: 'markdown', path: folder }],
    entryPoints: entries.map(([, file]) => path.join(root, file)),
    tsconfig: path.join(import.meta.dirname, 'tsconfig.json'),
    basePath: root,
    readme: 'none',
    sort: ['alphabetical'],
    groupOrder: ['Functions', 'Variables', 'Classes', 'Interfaces', 'Type Aliases'],
    sortEntryPoints: false,
    excludeReferences: true,
    disableSources: true,
    excludeInternal: true,
    excludePrivate: true,
    skipErrorChecking: true,
    logLevel: LogLevel.Error,
    outputFileStrategy: 'modules',
    entryFileName: 'README',
    hidePageHeader: true,
    hideBreadcrumbs: true,
    useHTMLEncodedBrackets: true,
    sanitizeComments: true,
    parametersFormat: 'table',
    interfacePropertiesFormat: 'table',
    typeDeclarationFormat: 'table',
    propertyMembersFormat: 'table',
    enumMembersFormat: 'table',
  });
  const project = await app.convert();
  if (project === undefined) throw new Error('TypeDoc could not read the packages.');
  project.name = 'API reference';
  for (const module of project.children ?? []) module.name = names.get(module.name);
  const core = project.children?.find(({ name }) => name === '@lousho/core');
  core.comment = new Comment([
    {
      kind: 'text',
      text: 'It also exports the names of [contract](contract.md) and [executor](executor.md) that an application needs: they are described there.',
    },
  ]);
  await app.generateOutputs(project);
}

function manifestOf(folder) {
  return JSON.parse(readFileSync(path.join(root, 'packages', folder, 'package.json'), 'utf8'));
}
