import { run } from './command.ts';
import { sayNothing, type Say } from './progress.ts';
import { findProgram } from './system-packages.ts';

const PROGRAMS = ['chromium-headless-shell', 'chromium', 'google-chrome', 'google-chrome-stable'];
/** As Debian calls them: a browser without windows, and a font, as pages on machines without any have no letters. */
const PACKAGES = ['chromium-headless-shell', 'fonts-dejavu-core'];

/** A browser of this machine that tests can steer; undefined: there is none. */
export function browserPath(): string | undefined {
  return PROGRAMS.map((one) => findProgram(one)).find((path) => path !== undefined);
}

/** Gets one where Debian's packages can be installed (65 MB); says why there is none otherwise. */
export async function ensureBrowser(say: Say = sayNothing): Promise<void> {
  if (browserPath() !== undefined) return;
  if (process.getuid?.() !== 0 || findProgram('apt-get') === undefined) {
    say('no Chromium is installed here: tests of pages are skipped');
    return;
  }
  say(`installing Debian packages: ${PACKAGES.join(', ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  await run('apt-get', ['-q', 'update'], { env, timeoutMs: 5 * 60_000 });
  const args = ['-q', 'install', '-y', '--no-install-recommends', ...PACKAGES];
  await run('apt-get', args, { env, timeoutMs: 10 * 60_000 });
}
