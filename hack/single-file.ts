import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { rolldown, type Plugin } from 'rolldown';
import { programVersion } from '../src/version.ts';
import { repositoryRoot } from './repository.ts';

/** What is in the place of the modules that read files of the package. */
const READS_FILES = /[\\/]dist[\\/]src[\\/]cli[\\/]packaged-files\.js$/;
const READS_VERSION = /[\\/]dist[\\/]src[\\/]version\.js$/;
/** The page as a browser loads it, and packages that it imports. */
const PAGE = 'dist/src/cli/ui/page';
const PAGE_MODULES = ['preact', 'preact/hooks', 'preact/jsx-runtime'];
const LICENSES = /^(licen[cs]e|notice|copying)(\.(md|txt))?$/i;

/** kubectl asks the program behind the other name for completions. */
const ENTRY = `
import { basename } from 'node:path';
import process from 'node:process';
if (basename(process.argv[1] ?? '').startsWith('kubectl_complete')) void import('./dist/src/cli/complete.js');
else void import('./dist/src/cli/main.js');
`;

/**
 * Below a package.json with "type": "module" a file whose name has no ending is no CommonJS, and has no `require` of its own. It has to be
 * a whole one: what modules only try to load is not there, and they wait for the error.
 */
const BANNER = `#!/usr/bin/env node
var require = require ?? process.getBuiltinModule('node:module').createRequire(process.argv[1]);`;

/**
 * `kubectl-spillway` as one file that needs nothing but Node.js: code, manifests, the page, and at its end the licenses of all that is
 * in it. From the compiled program in dist/. CommonJS, as a file whose name has no ending is that to every Node.js, and it runs where it
 * is taken for an ES module, too.
 */
export async function singleFile(): Promise<string> {
  const root = repositoryRoot();
  if (!existsSync(join(root, 'dist/src/cli/main.js'))) throw new Error('the program is not built: make build');
  const entry = join(root, 'single-file-entry.js');
  const inner: Plugin = {
    name: 'files-of-the-package',
    resolveId: (id) => (id === entry ? entry : null),
    load: (id) => {
      if (id === entry) return ENTRY;
      if (READS_FILES.test(id)) return filesModule(root);
      if (READS_VERSION.test(id)) return `export const programVersion = () => ${JSON.stringify(programVersion())};`;
      return null;
    },
  };
  const bundle = await rolldown({
    input: entry,
    platform: 'node',
    plugins: [inner],
    onLog: (level, { message }) => {
      if (level === 'warn') throw new Error(`the single file would not be whole: ${message}`);
    },
  });
  try {
    const { output } = await bundle.generate({
      format: 'cjs',
      banner: BANNER,
      codeSplitting: false,
      minify: { compress: true, mangle: false },
    });
    const [chunk, ...more] = output;
    if (more.length > 0) throw new Error(`there is more than one file: ${more.map((one) => one.fileName).join(', ')}`);
    return `${chunk.code}\n/*\n${licenses(root, chunk.moduleIds).replaceAll('*/', '* /')}*/\n`;
  } finally {
    await bundle.close();
  }
}

/** The module that has in it what src/cli/packaged-files.ts reads. */
function filesModule(root: string): string {
  const paths = [...filesBelow(root, 'manifests'), ...filesBelow(root, PAGE).filter((path) => !path.endsWith('.map'))];
  const files = Object.fromEntries(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]));
  const { resolve } = createRequire(import.meta.url);
  const modules = Object.fromEntries(PAGE_MODULES.map((name) => [name, readFileSync(resolve(name), 'utf8')]));
  return `
const FILES = new Map(Object.entries(${JSON.stringify(files)}));
const MODULES = new Map(Object.entries(${JSON.stringify(modules)}));
const bytes = (text) => (text === undefined ? undefined : Buffer.from(text));
export const packagedFile = (path) => bytes(FILES.get(path));
export function packagedFolder(path) {
  const names = [...FILES.keys()].filter((one) => one.startsWith(path + '/')).map((one) => one.slice(path.length + 1));
  return names.length === 0 ? undefined : names.filter((name) => !name.includes('/')).toSorted();
}
export function packagedModule(name) {
  const found = bytes(MODULES.get(name));
  if (found === undefined) throw new Error('this program was packaged without ' + name);
  return found;
}
`;
}

function filesBelow(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    return entry.isDirectory() ? filesBelow(root, path) : [path];
  });
}

/** The license texts of Spillway and of each package that modules are from, the same text once. */
function licenses(root: string, modules: readonly string[]): string {
  const folders = modules.flatMap((id) => /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(id)?.[0] ?? []);
  const packages = [root, ...new Set([...folders, join(root, 'node_modules/preact')])];
  const named = new Map<string, string[]>();
  for (const folder of packages) {
    const about = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<string, unknown>;
    const texts = readdirSync(folder).filter((name) => LICENSES.test(name));
    const text = texts.map((name) => readFileSync(join(folder, name), 'utf8').trim()).join('\n\n');
    const license = text === '' ? `License: ${String(about['license'])}` : text;
    const name = `${String(about['name'])} ${String(about['version'])}`;
    named.set(license, [...(named.get(license) ?? []), name]);
  }
  return [...named].map(([text, names]) => `${names.join(', ')}\n\n${text}\n`).join(`\n${'-'.repeat(79)}\n\n`);
}
