/** Where a Markdown file of the repository is found in the site: `docs/start.md` at `start.md`. */

/** @param {string} file relative to the repository */
export function addressOf(file) {
  if (file === 'README.md') return 'index.md';
  if (file === 'CONTRIBUTING.md') return 'contributing.md';
  if (file === 'docs/README.md') return 'pages.md';
  return file
    .replace(/^docs\//, '')
    .replace(/^tools\/docs-site\/api\/(@lousho\/)?/, 'api/')
    .replace('HOW_IT_WORKS.md', 'how-it-works.md')
    .replace(/README\.md$/, 'index.md');
}

/** As a link: `/start`, `/errors/`. */
export function linkTo(file) {
  return `/${addressOf(file)
    .replace(/\.md$/, '')
    .replace(/(^|\/)index$/, '$1')}`;
}
