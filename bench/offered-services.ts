import { PlainApi, type PlainAccess } from './plain-api.ts';

/** Endpoints of a slice, as Kubernetes' controller has them. */
const IN_SLICE = 100;
const SERVICE_PORT = { name: 'http', port: 80, protocol: 'TCP' };

interface Slice {
  readonly name: string;
  readonly addresses: string[];
}

/** Services of a cluster without pods, whose EndpointSlices are written here. */
export class OfferedServices {
  readonly #api: PlainApi;
  readonly #namespace: string;
  /** By Service. */
  readonly #slices = new Map<string, Slice[]>();
  /** By Service, how many of its endpoints were replaced. */
  readonly #replaced = new Map<string, number>();
  #addresses = 0;

  constructor(access: PlainAccess, namespace: string) {
    this.#api = new PlainApi(access, 1);
    this.#namespace = namespace;
  }

  /** A Service of so many endpoints. */
  async offer(name: string, endpoints: number): Promise<void> {
    const spec = { ports: [SERVICE_PORT] };
    await this.#api.change('POST', `/api/v1/namespaces/${this.#namespace}/services`, { metadata: { name }, spec });
    const slices: Slice[] = [];
    this.#slices.set(name, slices);
    for (let left = endpoints; left > 0; left -= IN_SLICE) {
      const addresses = Array.from({ length: Math.min(left, IN_SLICE) }, () => this.#newAddress());
      const slice = { name: `${name}-${slices.length}`, addresses };
      slices.push(slice);
      const labels = { 'kubernetes.io/service-name': name, 'endpointslice.kubernetes.io/managed-by': 'bench' };
      const metadata = { name: slice.name, labels };
      const body = { metadata, addressType: 'IPv4', ports: [SERVICE_PORT], endpoints: endpointsOf(slice) };
      await this.#api.change('POST', this.#path(), body);
    }
  }

  slicesOf(name: string): number {
    return this.#slices.get(name)?.length ?? 0;
  }

  /** Puts another endpoint in the place of one, in turns. `since`: when the cluster had taken it, in ms of `performance.now()`. */
  async replace(name: string): Promise<{ came: string; gone: string; since: number }> {
    const slices = this.#slices.get(name) ?? [];
    const turn = this.#replaced.get(name) ?? 0;
    this.#replaced.set(name, turn + 1);
    const slice = slices[turn % slices.length];
    if (slice === undefined) throw new Error(`there is no Service ${name}`);
    const came = this.#newAddress();
    const index = Math.floor(turn / slices.length) % slice.addresses.length;
    const [gone = ''] = slice.addresses.splice(index, 1, came);
    const body = { endpoints: endpointsOf(slice) };
    await this.#api.change('PATCH', `${this.#path()}/${slice.name}`, body, 'application/merge-patch+json');
    return { came, gone, since: performance.now() };
  }

  async close(): Promise<void> {
    await this.#api.close();
  }

  #path(): string {
    return `/apis/discovery.k8s.io/v1/namespaces/${this.#namespace}/endpointslices`;
  }

  /** None is told twice. */
  #newAddress(): string {
    const n = this.#addresses;
    this.#addresses += 1;
    return `10.${200 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`;
  }
}

function endpointsOf({ addresses }: Slice): object[] {
  return addresses.map((address) => ({ addresses: [address], conditions: { ready: true } }));
}
