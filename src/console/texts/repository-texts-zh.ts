/** Lists the Chinese texts of the pages about repositories. */
import type { Texts } from '../../language/texts.ts';
import type { repositoryTexts } from './repository-texts.ts';

export const repositoryTextsZh: Texts<typeof repositoryTexts> = {
  title: 'Webhook',
  lead: '您的仓库和您拥有的组织的仓库，以及它们的 Webhook。',
  none: '还没有仓库。一个仓库对应代码托管平台上的一个仓库，并拥有它的 Webhook。',
  noneOfOwner: '还没有仓库。',
  private: '私有',
  hooks: (count) => (count === 0 ? '没有 Webhook' : `${count} 个 Webhook`),
  failing: (count) => `${count} 个投递失败`,
  disabled: (count) => `${count} 个因失败停用`,
  switchedOff: (count) => `${count} 个由所有者停用`,
  all: (count) => `全部 ${count} 个`,
  page: (page, pages) => `第 ${page} 页，共 ${pages} 页`,
  next: '下一页',
  previous: '上一页',
  create: '新建仓库',
  owner: '所有者',
  name: '名称',
  nameHint: '字母、数字、点、短横线和下划线；最好与代码托管平台上的名称一致。',
  description: '描述',
  descriptionHint: '选填。',
  isPrivate: '私有',
  isPrivateHint: '其他人看不到它的存在。',
  submit: '创建仓库',
  created: '仓库已创建。',
};
