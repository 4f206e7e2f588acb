/**
 * `node dist/hack/conformance/main.js`: the conformance specs of sig-node from the Kubernetes e2e suite on a real
 * kubelet member, then through a virtual node of that member, and virtual-kubelet's own suite; writes
 * docs/conformance.md. Exits with 1 when something fails that should not.
 */
import { cpSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { ensureBinaries } from '../binaries.ts';
import { codeVersion } from '../code-version.ts';
import { sayOnStderr as say } from '../progress.ts';
import { repositoryRoot } from '../repository.ts';
import { canRunKubelets } from '../system-packages.ts';
import { describeTool } from '../tools.ts';
import { Workspace } from '../workspace.ts';
import { startTestBed, VIRTUAL_NODE, type TestBed } from './clusters.ts';
import { compare, type Comparison } from './comparison.ts';
import { FOCUS, LEFT_OUT } from './left-out.ts';
import { conformancePage, isConformant, type Findings } from './page.ts';
import { runSuite } from './run-suite.ts';
import { suiteImages } from './suite-images.ts';
import { runVirtualKubeletSuite } from './virtual-kubelet.ts';

const program = new Command('conformance')
  .description('the suites of others on a virtual node; writes docs/conformance.md')
  .option('--focus <regex>', 'only these specs of the e2e suite; the page is not written')
  .option('--processes <number>', 'specs at once', '6')
  .option('--no-kubernetes', "only virtual-kubelet's suite; the page is not written")
  .option('--keep <folder>', 'keep reports and logs there')
  .parse();
const options = program.opts<{ focus?: string; processes: string; kubernetes: boolean; keep?: string }>();

const can = await canRunKubelets();
if (!can.ok) {
  say(`conformance needs a real kubelet: ${can.reason}`);
  process.exit(1);
}
const tools = await ensureBinaries(['e2e.test', 'ginkgo', 'virtual-kubelet.test'], { say });
const workspace = Workspace.create({ say });
try {
  const images = await suiteImages(tools['e2e.test'], join(workspace.dir, 'suite-images'), say);
  const bed = await startTestBed(workspace, images.archive);
  const settings = {
    ginkgo: tools.ginkgo,
    e2eTest: tools['e2e.test'],
    repositories: images.repositories,
    focus: options.focus ?? FOCUS,
    skip: LEFT_OUT.map(({ pattern }) => pattern),
    processes: Number(options.processes),
  };
  const virtualKubelet = await runVirtualKubeletSuite(bed, VIRTUAL_NODE, tools['virtual-kubelet.test']);
  const onEach = async (): Promise<Comparison> => {
    const direct = await runSuite(bed.member, 'on-the-member', settings);
    return compare(direct, await runSuite(bed.host, 'through-the-virtual-node', settings));
  };
  const findings: Findings = {
    version: codeVersion(),
    kubernetes: describeTool('e2e.test').version,
    runtime: await runtimeOf(bed),
    comparison: options.kubernetes ? await onEach() : compare(new Map(), new Map()),
    leftOut: LEFT_OUT,
    gaps: images.gaps,
    virtualKubelet: { version: describeTool('virtual-kubelet.test').version, outcomes: virtualKubelet },
  };
  const page = conformancePage(findings);
  if (options.focus === undefined && options.kubernetes)
    writeFileSync(join(repositoryRoot(), 'docs', 'conformance.md'), page);
  console.log(page);
  process.exitCode = isConformant(findings) ? 0 : 1;
} finally {
  if (options.keep !== undefined) keep(options.keep);
  await workspace.close();
}

/** `containerd 1.6.20`, as the member's node reports it. */
async function runtimeOf({ member, node }: TestBed): Promise<string> {
  const object = (await member.api.call('GET', `/api/v1/nodes/${node.name}`)) as {
    status: { nodeInfo: { containerRuntimeVersion: string } };
  };
  const [, name = '', version = ''] = /^(\w+):\/\/([\d.]+)/.exec(object.status.nodeInfo.containerRuntimeVersion) ?? [];
  return `${name} ${version}`;
}

function keep(folder: string): void {
  for (const name of ['suite', 'virtual-kubelet-suite.log', 'host/spillway.log']) {
    const from = join(workspace.dir, name);
    if (existsSync(from)) cpSync(from, join(folder, name), { recursive: true });
  }
}
