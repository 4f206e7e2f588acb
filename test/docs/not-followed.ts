/** Blocks of commands that no test pastes as they stand there: by page, how each begins. */
interface NotFollowed {
  readonly why: string;
  readonly blocks: Readonly<Record<string, readonly string[]>>;
}

export const NOT_FOLLOWED: readonly NotFollowed[] = [
  {
    why: 'it takes minutes to an hour, and is what other targets of make are for',
    blocks: {
      'README.md': ['make demo'],
      'docs/histories.md': ['make simulate'],
      'docs/guides/burst-in-ten-minutes.md': ['make burst-demo'],
    },
  },
  {
    why: 'it needs Docker',
    blocks: { 'docs/guides/install.md': ['docker run'] },
  },
  {
    why: 'it changes the machine of whoever runs the tests',
    blocks: { 'docs/reference/cli.md': ['make build && npm install --global .', 'install dist/single/kubectl-spillway'] },
  },
  {
    why: 'it has a word in capitals for what only the reader knows',
    blocks: {
      'docs/invariants.md': ['kubectl annotate --overwrite membercluster NAME'],
      'docs/concepts/storage.md': ['kubectl annotate persistentvolume pvc-UID_OF_THE_CLAIM'],
      'docs/concepts/virtual-nodes.md': ['kubectl drain NODE'],
      'docs/guides/flat-networks.md': ['kubectl --context east run flat-server', 'kubectl --context east delete pod flat-server'],
    },
  },
  {
    why: 'it shows what the five commands above it print where real kubelets run',
    blocks: { 'docs/guides/install.md': ['kubectl spillway install --image example.com/spillway:0.1.0  '] },
  },
  {
    why: 'it needs what no cluster of the tests has: a proxy of that name, the Prometheus operator, Karmada, nodes with GPUs, a large member',
    blocks: {
      'docs/concepts/capacity.md': ['kubectl get membercluster east -o yaml'],
      'docs/guides/private-members.md': [
        'kubectl --context east get nodes',
        'kubectl spillway join east --member-context east --proxy-url none',
        'kubectl config set-cluster east --proxy-url',
      ],
      'docs/guides/kube-prometheus.md': ['kubectl apply --server-side -k manifests/monitoring'],
      'docs/guides/from-karmada.md': ['kubectl get propagationpolicies,overridepolicies'],
      'docs/guides/gpu-pools.md': ['kubectl get node east-gpu'],
    },
  },
  {
    why: 'it asks for what a manager and its pods have made in a whole installation',
    blocks: {
      'docs/guides/scheduling.md': ['kubectl get secret -n spillway-system spillway-scheduler-client'],
      'docs/runbooks.md': ['kubectl spillway status'],
    },
  },
  {
    why: 'it goes on until Ctrl-C: demo.test.ts opens the page',
    blocks: { 'docs/guides/ui.md': ['kubectl spillway ui'] },
  },
  {
    why: 'tests do the same, but not yet word by word: install.test.ts, helm.test.ts, burst.test.ts, leaving.test.ts and demo.test.ts',
    blocks: {
      'README.md': ['kubectl get nodes'],
      'docs/concepts/leaving.md': ['kubectl drain -l spillway.dev/member=east', 'kubectl spillway orphans'],
      'docs/concepts/placement.md': ['kubectl label namespace shop'],
      'docs/guides/burst-in-ten-minutes.md': [
        'kubectl spillway install',
        'kubectl create namespace shop',
        'kubectl create deployment web',
        'kubectl get pods -n shop -o wide',
      ],
      'docs/guides/install.md': [
        'kubectl spillway install --image example.com/spillway:0.1.0',
        'kubectl apply --server-side -k deploy/kustomize/ha',
        'helm install spillway',
        'kubectl spillway uninstall',
      ],
    },
  },
];
