import { createHash } from 'node:crypto';
import { packagedFile, packagedFolder, packagedModule } from '../packaged-files.ts';

/** What a browser loads, by the path of its address. */
export interface PageFiles {
  files: ReadonlyMap<string, PageFile>;
  /** For the Content-Security-Policy: the one script that stands in the document itself. */
  inlineScript: string;
}

export interface PageFile {
  type: string;
  body: Buffer;
}

/** Where the page lies once it is compiled. */
const FOLDER = 'dist/src/cli/ui/page';
const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  mjs: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};
/** Packages that the page imports. They are served as they were published. */
const PACKAGES: Readonly<Record<string, string>> = {
  preact: '/packages/preact.mjs',
  'preact/hooks': '/packages/hooks.mjs',
  'preact/jsx-runtime': '/packages/jsx-runtime.mjs',
};

/** Reads all files of the page once, so that no request ever leads to a path. Throws when the page is not built. */
export function pageFiles(): PageFiles {
  const names = packagedFolder(FOLDER);
  if (names === undefined || !names.includes('main.js')) throw new Error('this program was packaged without its page');
  const files = new Map<string, PageFile>();
  for (const name of names) {
    const type = TYPES[name.slice(name.lastIndexOf('.') + 1)];
    const body = type === undefined ? undefined : packagedFile(`${FOLDER}/${name}`);
    if (type !== undefined && body !== undefined) files.set(`/${name}`, { type, body });
  }
  for (const [name, path] of Object.entries(PACKAGES)) {
    files.set(path, { type: TYPES['mjs'] ?? '', body: packagedModule(name) });
  }
  const importMap = JSON.stringify({ imports: PACKAGES });
  files.set('/', { type: HTML, body: Buffer.from(documentOf(importMap)) });
  return { files, inlineScript: `'sha256-${createHash('sha256').update(importMap).digest('base64')}'` };
}

export const HTML = 'text/html; charset=utf-8';

function documentOf(importMap: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Spillway</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/style.css">
<script type="importmap">${importMap}</script>
<script type="module" src="/main.js"></script>
</head>
<body><noscript>This page needs JavaScript. The same is told by: kubectl spillway status</noscript></body>
</html>
`;
}
