/** One attack in a process of its own: `node bench/abuse/attacker.ts NAME GRPC_PORT HTTP_PORT`. Goes on until it is killed. */
import { attacks } from './attacks.ts';

const [name, grpcPort, httpPort] = process.argv.slice(2);
const attack = attacks.find((candidate) => candidate.name === name);
if (attack === undefined) throw new Error(`There is no attack "${name}"`);
// Servers close such connections, which must not end the attack.
process.on('unhandledRejection', () => {});
process.on('uncaughtException', () => {});
await attack.run({ grpcPort: Number(grpcPort), httpPort: Number(httpPort) });
