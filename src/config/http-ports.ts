/** Lists the HTTP ports that the settings open. */
import type { Config } from './config.ts';

export interface HttpPort {
  readonly name: string;
  /** The setting of the port. */
  readonly variable: string;
  readonly port: number;
}

/** The common port first, then that of llm-d if this process predicts. */
export function listHttpPorts({ server, prediction: { llmDPort } }: Config): HttpPort[] {
  const common = { name: 'HTTP port', variable: 'HTTP_PORT', port: server.httpPort };
  if (llmDPort === undefined || !server.parts.includes('prediction')) return [common];
  return [common, { name: 'llm-d port', variable: 'LLM_D_PORT', port: llmDPort }];
}
