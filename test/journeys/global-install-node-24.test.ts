/** The package installed globally on Node 24, the one of this run. */
import { openInstallations, testGlobalInstall } from '../support/deploy/global-install.ts';

testGlobalInstall(openInstallations(), { node: '24', npm: '11.12.0' });
