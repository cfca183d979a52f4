/** The menu at the side: the pages of docs/ in the order in which they are read, then packages, examples and the reference. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { entryPoints } from '../api-pages.mjs';
import { linkTo } from './addresses.mjs';

const root = path.resolve(import.meta.dirname, '../../..');

const sections = {
  Begin: ['README.md', 'docs/start.md', 'docs/guarantees.md', 'docs/contract.md', 'docs/glossary.md'],
  Build: ['docs/sessions.md', 'docs/approvals.md', 'docs/delegation.md', 'docs/testing.md'],
  Run: [
    'docs/operations.md',
    'docs/deploying.md',
    'docs/stores.md',
    'docs/build-a-store.md',
    'docs/errors/README.md',
  ],
  'Come from': ['docs/migrate/langgraph.md', 'docs/migrate/ai-sdk.md', 'docs/migrate/openai-agents.md'],
};

export function menu() {
  const known = ['docs/README.md', ...Object.values(sections).flat()];
  // A page that nobody has put into a section yet must be found, too.
  const more = readdirSync(path.join(root, 'docs'))
    .filter((name) => name.endsWith('.md') && !known.includes(`docs/${name}`))
    .map((name) => `docs/${name}`);
  return [
    ...Object.entries({ ...sections, ...(more.length > 0 && { More: more }) }).map(([text, files]) => ({
      text,
      items: files.map(item),
    })),
    closed('Examples', readmesIn('docs/examples')),
    closed('Packages', readmesIn('packages')),
    closed(
      'API reference',
      entryPoints().map(([name]) => `tools/docs-site/api/${name}.md`),
    ),
  ];
}

/** A line of a menu: the heading of the page, and where it is. */
export function item(file) {
  const [, heading] = /^# (.*)$/m.exec(readFileSync(path.join(root, file), 'utf8'));
  return { text: heading, link: linkTo(file) };
}

function closed(text, files) {
  return { text, collapsed: true, items: files.map(item) };
}

function readmesIn(folder) {
  return readdirSync(path.join(root, folder))
    .map((name) => `${folder}/${name}/README.md`)
    .filter((file) => existsSync(path.join(root, file)));
}
