/** What the two servers of the comparison tell the one who measures them. */
export type Kind = 'refresh' | 'exchange' | 'introspect' | 'user';

export interface Ready {
  readonly port: number;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly tokenPath: string;
  readonly introspectPath: string;
  readonly userPath: string;
}

export type Question =
  | { readonly ask: 'prepare'; readonly kind: Kind; readonly count: number }
  | { readonly ask: 'cpu' };

export interface BenchServer {
  readonly ready: Ready;
  /** Refresh tokens, codes or access tokens, ready to be used. */
  prepare(kind: Kind, count: number): Promise<readonly string[]>;
}

/** Runs in the server's own process and answers its parent. */
export function serveParent(server: BenchServer): void {
  process.on('message', (question: Question) => {
    if (question.ask === 'cpu') {
      const { user, system } = process.cpuUsage();
      process.send?.(user + system);
      return;
    }
    void server.prepare(question.kind, question.count).then((secrets) => process.send?.(secrets));
  });
  process.send?.(server.ready);
}
