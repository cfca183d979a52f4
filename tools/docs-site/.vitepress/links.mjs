/**
 * Links as they are written for the repository, changed into links of the site.
 *
 * A link to a page leads to the page, a link to a folder to its README. Any other file of the repository is no page: the link leads to
 * `DOCS_SOURCE_URL` when that is set, else it is text that says where to look. A link to nothing ends the build.
 */
import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { linkTo } from './addresses.mjs';

/** A plug-in of markdown-it. */
export function linksToPages(md, root) {
  md.core.ruler.after('inline', 'links-to-pages', ({ tokens, env }) => {
    for (const { children } of tokens) changeLinks(children ?? [], env.realPath ?? env.path, root);
  });
}

function changeLinks(tokens, page, root) {
  const opened = [];
  for (const token of tokens) {
    if (token.type === 'link_open') {
      changeLink(token, page, root);
      opened.push(token);
    } else if (token.type === 'link_close' && opened.pop().tag === 'span') {
      [token.type, token.tag] = ['span_close', 'span'];
    }
  }
}

function changeLink(token, page, root) {
  const href = token.attrGet('href');
  if (/^([a-z]+:|#|\/)/.test(href)) return;
  const [target, hash] = href.split('#');
  const found = path.resolve(path.dirname(page), decodeURI(target));
  if (!existsSync(found))
    throw new Error(`${path.relative(root, page)} links to ${href}, which is not there.`);
  const file = path.relative(root, pageFor(found));
  const isPage = file.endsWith('.md') && !file.startsWith('.') && !/^tools\/(?!docs-site\/api\/)/.test(file);
  if (isPage) token.attrSet('href', linkTo(file) + (hash === undefined ? '' : `#${hash}`));
  else if (process.env.DOCS_SOURCE_URL) token.attrSet('href', `${process.env.DOCS_SOURCE_URL}/${file}`);
  else [token.type, token.tag, token.attrs] = ['span_open', 'span', [['title', file]]];
}

function pageFor(found) {
  const readme = path.join(found, 'README.md');
  return statSync(found).isDirectory() && existsSync(readme) ? readme : found;
}
