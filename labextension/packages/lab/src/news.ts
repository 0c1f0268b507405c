/** What JupyterLab tells of one's sessions, whatever is open in it. */
import type { ServerEvent, Session } from '@backendai/api';
import type { SharedStream } from '@backendai/api/shared';
import { gatherEnds, readFact } from '@backendai/ui/ends';

export interface Surroundings {
  /** The session this JupyterLab runs in. */
  here: Session;
  /** How many sessions of the same person run. */
  count: number;
}

interface Place {
  /** The path at which this JupyterLab is reached. */
  path: string;
  /** One's sessions that run; null if the platform does not answer. */
  list(): Promise<readonly Session[] | null>;
}

interface Reader {
  show(found: Surroundings): void;
  tell(ended: readonly Session[]): void;
}

/**
 * Counts one's sessions once, and then hears what becomes of them.
 *
 * Where JupyterLab runs in none of them it stops listening.
 */
export class News {
  private here: Session | undefined;
  private running = new Set<string>();
  private counts = 0;
  /** Heard since a count was begun that is not done, and perhaps newer than it. */
  private heard: Session[] | null = null;
  private readonly gather;
  private readonly leave;

  constructor(
    stream: Pick<SharedStream, 'listen'>,
    private readonly place: Place,
    private readonly reader: Reader
  ) {
    this.gather = gatherEnds(ended => reader.tell(ended));
    this.leave = stream.listen({
      onEvent: event => this.hear(event),
      onState: state => {
        if (state === 'live') {
          void this.count();
        }
      }
    });
  }

  private async count(): Promise<void> {
    const number = ++this.counts;
    this.heard = [];
    const found = await this.place.list();
    if (number !== this.counts) {
      return;
    }
    const { heard } = this;
    this.heard = null;
    if (!found) {
      return;
    }
    this.here ??= found.find(session => session.attachment?.prefix === this.place.path);
    if (!this.here) {
      this.leave();
      return;
    }
    this.running = new Set(found.map(session => session.id));
    heard?.forEach(session => this.note(session));
    this.show();
  }

  private hear(received: ServerEvent): void {
    const event = readFact(received);
    if (!event?.session) {
      return;
    }
    this.heard?.push(event.session);
    if (this.here) {
      this.gather(event, this.here.owner);
      this.note(event.session);
      this.show();
    }
  }

  private note(session: Session): void {
    const { id, owner, status } = session;
    if (id === this.here?.id) {
      this.here = session;
    }
    if (status === 'RUNNING' && owner === this.here?.owner) {
      this.running.add(id);
    } else {
      this.running.delete(id);
    }
  }

  private show(): void {
    if (this.here) {
      this.reader.show({ here: this.here, count: this.running.size });
    }
  }
}
