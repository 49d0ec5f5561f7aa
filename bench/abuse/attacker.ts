/** One attack in a process of its own: `node bench/abuse/attacker.ts NAME GRPC_PORT HTTP_PORT`. Goes on until it is killed. */
import { constants, setPriority } from 'node:os';
import { attacks } from './attacks.ts';

const [name, grpcPort, httpPort] = process.argv.slice(2);
const attack = attacks.find((candidate) => candidate.name === name);
if (attack === undefined) throw new Error(`There is no attack "${name}"`);
// An attacker has a machine of its own: here it must not take the cores of those that are measured.
setPriority(constants.priority.PRIORITY_LOW);
// Servers end such connections: that is no reason to stop.
process.on('unhandledRejection', () => {});
process.on('uncaughtException', () => {});
await attack.run({ grpcPort: Number(grpcPort), httpPort: Number(httpPort) });
