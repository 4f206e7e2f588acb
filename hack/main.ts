/** `node dist/hack/main.js`: real Kubernetes clusters on this machine, for development and for the demo. */
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Command } from 'commander';
import { programVersion } from '../src/version.ts';
import { cacheFolder, ensureBinaries } from './binaries.ts';
import { PACE, startBurstLab } from './burst-lab.ts';
import { loseMember, loseMemberForGood } from './burst-loss.ts';
import { judgeLoss, type Loss } from './burst-verdict.ts';
import { runBurst } from './burst.ts';
import { startDemo } from './demo.ts';
import { run } from './command.ts';
import { programImage } from './program-image.ts';
import { sayOnStderr as say } from './progress.ts';
import { repositoryRoot } from './repository.ts';
import { findRunning, forgetRunning, saveRunning } from './running.ts';
import { singleFile } from './single-file.ts';
import { canRunKubelets, type CanRun } from './system-packages.ts';
import { CONTROL_PLANE_TOOLS, isOtherVersion, isToolName, OTHER_VERSIONS, VERSIONED_TOOLS } from './tools.ts';
import { parseMember, prepareKubelets, startTopology, type MemberPlan } from './up.ts';
import { Workspace } from './workspace.ts';

const program = new Command('hack').description('Real Kubernetes clusters from plain processes.');

program
  .command('tools')
  .description('get binaries (given folder, cache, download, go build) and print their paths')
  .argument('[names...]', 'default: what control planes, kwok members and, where they can run, real kubelets need')
  .option('--kubernetes <versions...>', `control planes of other versions instead: ${OTHER_VERSIONS.join(', ')}`, [])
  .action(async (names: string[], { kubernetes }: { kubernetes: string[] }) => {
    for (const version of kubernetes) {
      if (!isOtherVersion(version)) throw new Error(`unknown version: ${version}`);
      const paths = await ensureBinaries(VERSIONED_TOOLS, { say, kubernetes: version });
      for (const [name, path] of Object.entries(paths)) console.log(`${name} ${version}\t${path}`);
    }
    if (kubernetes.length > 0) return;
    const known = names.filter(isToolName);
    const unknown = names.filter((name) => !isToolName(name));
    if (unknown.length > 0) throw new Error(`unknown tools: ${unknown.join(', ')}`);
    const paths = await ensureBinaries(known.length > 0 ? known : await defaultTools(), { say });
    for (const [name, path] of Object.entries(paths)) console.log(`${name}\t${path}`);
  });

program
  .command('up')
  .description('start a host and members that outlive this command')
  .option('--name <name>', 'to tell several apart', 'lab')
  .option('--member <NAME=KIND:NODES...>', 'KIND is kubelet or kwok', collect, [])
  .action(async ({ name, member }: { name: string; member: string[] }) => {
    const plans: MemberPlan[] = member.map(parseMember);
    await startDetached(name, async (workspace, can) => {
      const { host, members } = await startTopology(workspace, plans, can);
      return [host, ...members.map(({ cluster }) => cluster)]
        .map((cluster) => `${cluster.name}\t${cluster.server}\tKUBECONFIG=${cluster.kubeconfig}`)
        .join('\n');
    });
  });

program
  .command('down')
  .description('end what up started and remove all of it')
  .option('--name <name>', 'as given to up', 'lab')
  .action(({ name }: { name: string }) => end(name));

program
  .command('demo')
  .description('host, two members, Spillway, and a Deployment that is larger than its host')
  .option('--name <name>', 'to tell several apart', 'demo')
  .action(async ({ name }: { name: string }) => {
    await startDetached(name, async (workspace, can) => {
      const metrics = await ensureBinaries(['metrics-server'], { say }).then(
        () => true,
        (error: unknown) => {
          say(`there is no metrics-server, so kubectl top has nothing to show: ${String(error)}`);
          return false;
        },
      );
      return await startDemo(workspace, { can, metrics });
    });
  });

program
  .command('demo-down')
  .description('end the demo and remove all of it')
  .option('--name <name>', 'as given to demo', 'demo')
  .option('--purge', 'remove built and downloaded binaries and images from the cache, too')
  .action(async ({ name, purge }: { name: string; purge?: true }) => {
    await end(name);
    if (purge === undefined) return;
    const cache = dirname(cacheFolder());
    rmSync(cache, { recursive: true, force: true });
    say(`removed ${cache}; what Go and npm keep in caches of their own, and Debian packages that were installed, stay`);
  });

program
  .command('image')
  .description('the image of the manager as an OCI archive, and what is in it as SPDX, without Docker')
  .option('--name <name>', 'with its tag', `spillway:${programVersion()}`)
  .option('--out <folder>', 'where to', 'dist/image')
  .action(async ({ name, out }: { name: string; out: string }) => {
    mkdirSync(out, { recursive: true });
    const archive = join(out, 'spillway.oci.tar');
    const content = await programImage(name);
    writeFileSync(archive, content);
    const sbom = await run('npm', ['sbom', '--sbom-format', 'spdx', '--omit', 'dev'], { cwd: repositoryRoot() });
    writeFileSync(join(out, 'spillway.spdx.json'), sbom);
    say(
      `${archive}: ${name}, ${(content.length / 2 ** 20).toFixed(0)} MiB; beside it its packages, spillway.spdx.json`,
    );
  });

program
  .command('single-file')
  .description('kubectl spillway as one file that needs nothing but Node.js')
  .option('--out <folder>', 'where to', 'dist/single')
  .action(async ({ out }: { out: string }) => {
    const content = await singleFile();
    const file = join(out, 'kubectl-spillway');
    mkdirSync(out, { recursive: true });
    writeFileSync(file, content);
    chmodSync(file, 0o755);
    say(`${file}: ${(Buffer.byteLength(content) / 2 ** 20).toFixed(0)} MiB`);
  });

program
  .command('burst')
  .description(
    'an autoscaler takes a Deployment from 2 to 20 pods and back, out of its host into two members, one of which is lost twice',
  )
  .action(async () => {
    await ensureBinaries([...CONTROL_PLANE_TOOLS, 'kwok', 'metrics-server'], { say });
    const workspace = Workspace.create({ say });
    try {
      say('starting a host with metrics-server, and members a and b');
      const lab = await startBurstLab(workspace);
      const wrong: string[] = [];
      await runBurst(
        lab,
        (line) => console.log(line),
        async (stage) => {
          const judge = (loss: Loss): void => {
            const found = judgeLoss(stage.history.moments(), loss, PACE);
            for (const line of found) stage.say(`not as it should be: ${line}`);
            wrong.push(...found);
          };
          judge(await loseMember(lab, stage));
          if (wrong.length === 0) judge(await loseMemberForGood(lab, stage));
          if (wrong.length > 0) throw new Error(`the burst was not as it should be: ${wrong.join('; ')}`);
          stage.say(`each time pods left a at ${String(PACE)} a second, and all are where the policy says`);
        },
      );
    } finally {
      await workspace.close();
    }
  });

async function defaultTools(): Promise<(typeof CONTROL_PLANE_TOOLS)[number][]> {
  const kubelets = (await canRunKubelets()).ok ? (['kubelet', 'kube-proxy', 'coredns'] as const) : [];
  return [...CONTROL_PLANE_TOOLS, 'kwok', ...kubelets];
}

function collect(value: string, before: string[]): string[] {
  return [...before, value];
}

/** Runs `work` in a workspace that stays when it succeeds, and leaves nothing when it fails. */
async function startDetached(
  name: string,
  work: (workspace: Workspace, can: CanRun) => Promise<string>,
): Promise<void> {
  const running = findRunning(name);
  if (running !== undefined) {
    console.log(running.summary);
    say(`${name} was started before and still runs`);
    return;
  }
  const began = Date.now();
  await ensureBinaries([...CONTROL_PLANE_TOOLS, 'kwok'], { say });
  const can = await prepareKubelets(say);
  const prepared = Date.now();
  const workspace = Workspace.create({ say });
  try {
    const summary = await work(workspace, can);
    workspace.detach();
    saveRunning(name, { workspace: workspace.dir, summary });
    console.log(summary);
  } catch (error) {
    await workspace.close();
    throw error;
  }
  const seconds = (ms: number): string => (ms / 1000).toFixed(1);
  say(`${name} is up: ${seconds(prepared - began)} s to prepare, ${seconds(Date.now() - prepared)} s to start`);
}

async function end(name: string): Promise<void> {
  const running = findRunning(name);
  if (running === undefined) {
    say(`${name} does not run`);
    return;
  }
  await Workspace.open(running.workspace, say).close();
  forgetRunning(name);
  say(`${name} has ended and is removed`);
}

try {
  await program.parseAsync();
} catch (error) {
  console.error(`hack: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
