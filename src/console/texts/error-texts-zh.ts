/** Lists the Chinese texts of the page of predicted and observed times. */
import { formatCount } from '../../language/plural.ts';
import type { Texts } from '../../language/texts.ts';
import type { errorTexts } from './error-texts.ts';

export const errorTextsZh: Texts<typeof errorTexts> = {
  title: '预测与实测',
  lead: '所有版本的上报延迟与对应预测的对比；单台服务器不显示按负载统计的误差。两个坐标轴均为对数刻度。线上的点表示两者相等；线上方表示请求耗时比预测更长。',
  target: '指标',
  all: '全部',
  none: '此时间范围内没有上报。',
  against: (target) => `${target}：实测与预测`,
  summary: (rows, median, within) => `${formatCount(rows)} 次上报；中位数与预测相差 ${median}，${within}% 在 20% 以内`,
  axes: '横轴：预测延迟。纵轴：实测延迟。颜色越深，单位面积内的上报越多。',
  equal: '实测等于预测',
  cells: '上报',
  byPredicted: '按预测延迟列出的数值',
  byLoad: '按负载统计的误差',
  byLoadLead:
    '按服务器和请求的情况统计实测与预测的偏离：中位数，以及包含 80% 样本的范围。大于 0：请求耗时比预测更长。随负载变化的中位数是模型反复出现的误差。',
  picture: '−75% 至 +300%',
  median: '中位数',
  middle: '10% – 90%',
  rows: '上报数',
  range: '范围',
  predicted: '预测延迟，ms',
};
