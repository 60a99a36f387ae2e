// Healthy families by other hands: written from public descriptions of what GPU programs do, by somebody who had not
// read the judge. Each names what it was drawn from.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "families.hpp"
#include "families_tables.hpp"
#include "stage.hpp"

namespace vramtrack::accuracy {
namespace {

Stage stage_of(Draw& draw, const char* command, double duration_s) {
  Stage stage = roomy_stage(draw, duration_s, true, 0.25);
  stage.command = command;
  return stage;
}

double some_hours(Draw& draw) {
  return draw.log_uniform(3 * 3600.0, draw.by_split(24 * 3600.0, 40 * 3600.0));
}

void finish(Draw& draw, Trace& trace, const Stage& stage) {
  trace.capacity_bytes = stage.capacity_bytes;
  trace.toml = write_scenario(draw, stage, trace.seed, trace.family);
}

/// Steps of a batch, small beside what the family is about.
void add_batches(Draw& draw, Stage& stage, double share) {
  stage.shape("sawtooth", fmt::format("amplitude_bytes = {:.0f}\nperiod_s = {:.1f}\nperiod_spread = 0.2\n"
                                      "amplitude_spread = 0.2",
                                      stage.free_bytes * share, draw.log_uniform(2, 60)));
}

/// Takes `bytes` at once, `at_s` after the program's start.
void take(Stage& stage, double bytes, double at_s) {
  stage.shape("constant", fmt::format("bytes = {:.0f}\nonset_s = {:.0f}", bytes, at_s));
}

/// vLLM: weights, then the KV cache up to gpu_memory_utilization at once, CUDA graphs one by one, and activations of
/// the largest prompt so far (docs.vllm.ai, "Conserving memory"; vllm#550).
void kv_cache_server(Draw& draw, Trace& trace) {
  Stage stage = stage_of(draw, "vllm serve --model llama", some_hours(draw));
  const double graphs_s = stage.load_s + draw.uniform(30, 150);
  take(stage, stage.free_bytes * draw.uniform(0.75, 0.92), graphs_s);
  stage.shape("load", fmt::format("bytes = {:.0f}\nshards = {}\nover_s = {:.0f}\nonset_s = {:.0f}",
                                  stage.free_bytes * draw.uniform(0.01, 0.04), draw.whole(20, 67), draw.uniform(15, 90),
                                  graphs_s + 5));
  stage.shape("running_max", fmt::format("typical_bytes = {:.0f}\nevery_s = {:.1f}\nsigma = 0.5\nmax_bytes = {:.0f}",
                                         0.004 * stage.free_bytes, draw.log_uniform(2, 60), 0.025 * stage.free_bytes));
  finish(draw, trace, stage);
}

/// generate() of Transformers behind a web server: the caching allocator keeps what the longest prompt so far took
/// (data-to-text-hierarchical#7, piper#484).
void longest_prompt(Draw& draw, Trace& trace) {
  Stage stage = stage_of(draw, "python generate_server.py", some_hours(draw));
  stage.shape("running_max", fmt::format("typical_bytes = {:.0f}\nevery_s = {:.1f}\nsigma = {:.2f}\nmax_bytes = {:.0f}",
                                         stage.free_bytes * draw.uniform(0.04, 0.12), draw.log_uniform(2, 120),
                                         draw.uniform(0.45, draw.by_split(0.75, 0.85)), 0.85 * stage.free_bytes));
  finish(draw, trace, stage);
}

/// ONNX Runtime's and TensorFlow's BFC arena: each region is twice the one before, whenever a larger input comes
/// (onnxruntime#22297, kNextPowerOfTwo; tf.config allow_growth).
void doubling_arena(Draw& draw, Trace& trace) {
  Stage stage = stage_of(draw, "python onnx_worker.py", some_hours(draw));
  const int regions = draw.whole(3, 5);
  double bytes = stage.free_bytes * draw.uniform(0.3, 0.9) / static_cast<double>((1 << regions) - 1);
  double at_s = stage.load_s;
  const double apart_s = draw.log_uniform(30, draw.by_split(5400.0, 9000.0));
  for (int i = 0; i < regions; ++i, bytes *= 2) {
    at_s += draw.random.exponential(apart_s);
    take(stage, bytes, at_s);
  }
  add_batches(draw, stage, 0.01);
  finish(draw, trace, stage);
}

/// A first epoch sorted by length, as SortaGrad has it: memory follows the length up, and stays
/// (deepspeech.pytorch#172).
void sorted_first_epoch(Draw& draw, Trace& trace) {
  const double epoch_s = draw.log_uniform(600, draw.by_split(2.5, 4.0) * 3600);
  Stage stage = stage_of(draw, "python train_asr.py --sorta-grad", epoch_s * draw.uniform(3, 8));
  const double share = draw.uniform(0.15, 0.8);
  const double power = draw.uniform(1.05, 2.2);
  stage.shape("accelerating",
              fmt::format("bytes = {:.0f}\nover_s = {:.0f}\npower = {:.2f}\nonset_s = {:.0f}\nuntil_s = {:.0f}",
                          stage.free_bytes * share, epoch_s, power, stage.load_s, stage.load_s + epoch_s));
  if (power < 1.4) trace.straight_share = share;
  add_batches(draw, stage, 0.04);
  finish(draw, trace, stage);
}

/// The sequence length grows in stages (DeepSpeed curriculum learning), each longer than the one before by a half.
void curriculum(Draw& draw, Trace& trace) {
  const int stages = draw.whole(3, 6);
  const double every_s = draw.log_uniform(600, draw.by_split(2.0, 3.0) * 3600);
  Stage stage = stage_of(draw, "deepspeed pretrain.py --curriculum", every_s * (stages + draw.uniform(3, 8)));
  double bytes = stage.free_bytes * draw.uniform(0.3, 0.8) / 20;
  for (int i = 1; i <= stages; ++i, bytes *= 1.5)
    take(stage, bytes, stage.load_s + every_s * (i + draw.uniform(-0.1, 0.1)));
  add_batches(draw, stage, 0.05);
  finish(draw, trace, stage);
}

/// A diffusion UI: somebody comes, a checkpoint is loaded, images are made, and after idle minutes it is unloaded.
void image_sessions(Draw& draw, Trace& trace) {
  Stage stage = stage_of(draw, "python main.py --listen", draw.uniform(8, draw.by_split(30.0, 48.0)) * 3600);
  const double apart_s = draw.log_uniform(1200, 3 * 3600.0);
  for (double t = draw.random.exponential(apart_s); t < stage.duration_s; t += draw.random.exponential(apart_s)) {
    const double lasts_s = draw.log_uniform(180, 3600);
    const double model = stage.free_bytes * draw.uniform(0.2, 0.5);
    stage.shape("load", fmt::format("bytes = {:.0f}\nover_s = {:.0f}\nshards = 8\nonset_s = {:.0f}\nrelease_s = {:.0f}",
                                    model, draw.uniform(3, 30), t, t + lasts_s + 300));
    stage.shape("sawtooth",
                fmt::format("amplitude_bytes = {:.0f}\nperiod_s = {:.0f}\nperiod_spread = 0.3\nform = "
                            "\"square\"\nonset_s = {:.0f}\nrelease_s = {:.0f}",
                            stage.free_bytes * draw.uniform(0.05, 0.35), draw.uniform(8, 60), t + 30, t + lasts_s));
    t += lasts_s + 300;
  }
  finish(draw, trace, stage);
}

/// Jupyter: cells put frames and models on the card one after the other; now and then the kernel is restarted.
void notebook(Draw& draw, Trace& trace) {
  const double restart_s = draw.log_uniform(3600, 5 * 3600.0);
  Stage stage = stage_of(draw, "python -m ipykernel_launcher", restart_s * draw.uniform(2, 5));
  stage.program_keys = fmt::format("lifetime_s = {:.0f}\nrestart_after_s = {:.0f}\n", restart_s, draw.uniform(5, 120));
  double left = stage.free_bytes * draw.uniform(0.3, 0.75);
  for (int i = 0, cells = draw.whole(3, 9); i < cells; ++i) {
    const double bytes = left * draw.uniform(0.1, 0.6);
    left -= bytes;
    take(stage, bytes, stage.load_s + restart_s * draw.uniform(0.01, 0.9));
  }
  finish(draw, trace, stage);
}

/// Documents are embedded for a search index whenever a timer fires: load, a batch that grows to what fits, exit.
void embedding_job(Draw& draw, Trace& trace) {
  const double lasts_s = draw.log_uniform(240, 2400);
  Stage stage = stage_of(draw, "python embed_documents.py", some_hours(draw));
  stage.program_keys =
      fmt::format("lifetime_s = {:.0f}\nrestart_after_s = {:.0f}\n", lasts_s, lasts_s * draw.uniform(0.5, 4));
  stage.shape("running_max",
              fmt::format("typical_bytes = {:.0f}\nevery_s = {:.1f}\nsigma = 0.4\nmax_bytes = {:.0f}",
                          stage.free_bytes * draw.uniform(0.1, 0.4), draw.log_uniform(1, 20), 0.8 * stage.free_bytes));
  finish(draw, trace, stage);
}

/// JAX takes three quarters of the card with its first operation (docs.jax.dev, "GPU memory allocation").
void preallocation(Draw& draw, Trace& trace) {
  Stage stage = stage_of(draw, "python train_flax.py", some_hours(draw));
  const double bytes = std::min(0.75 * stage.capacity_bytes - stage.base_bytes, 0.95 * stage.free_bytes);
  take(stage, std::max(bytes, 0.3 * stage.free_bytes), stage.load_s + draw.log_uniform(2, 300));
  stage.shape("settle", fmt::format("bytes = {:.0f}\nsteps = 3\nover_s = {:.0f}\nonset_s = {:.0f}",
                                    draw.uniform(50, 400) * kMiB, draw.log_uniform(60, 1800), stage.load_s));
  finish(draw, trace, stage);
}

/// Data-parallel training: optimizer state at the first step, NCCL's channels at the first collectives, a higher level
/// from the first validation on, gathers at checkpoints.
void first_validation(Draw& draw, Trace& trace) {
  Stage stage = stage_of(draw, "torchrun train_ddp.py --batch-size 16", some_hours(draw));
  const double epoch_s = draw.log_uniform(900, 0.3 * stage.duration_s);
  take(stage, stage.free_bytes * draw.uniform(0.1, 0.25), stage.load_s + draw.uniform(20, 90));
  stage.shape("settle", fmt::format("bytes = {:.0f}\nsteps = 4\nover_s = 90\nonset_s = {:.0f}",
                                    draw.uniform(200, 900) * kMiB, stage.load_s + 20));
  take(stage, stage.free_bytes * draw.uniform(0.05, 0.2), stage.load_s + epoch_s);
  stage.shape("evaluation",
              fmt::format("bytes = {:.0f}\nevery_s = {:.0f}\nlasts_s = {:.0f}\nspread = 0.1",
                          stage.free_bytes * draw.uniform(0.02, 0.15), epoch_s, epoch_s * draw.uniform(0.03, 0.15)));
  stage.shape("evaluation", fmt::format("bytes = {:.0f}\nevery_s = {:.0f}\nlasts_s = {:.0f}",
                                        stage.free_bytes * draw.uniform(0.02, 0.1), draw.log_uniform(600, 3600),
                                        draw.uniform(10, 60)));
  add_batches(draw, stage, 0.05);
  finish(draw, trace, stage);
}

/// Adaptive mesh refinement: cells follow the shock, for hours up and for hours down, with a step at every regrid.
void mesh_refinement(Draw& draw, Trace& trace) {
  const double period_s = draw.uniform(2, draw.by_split(7.0, 10.0)) * 3600;
  Stage stage = stage_of(draw, "./amr_solver input.toml", period_s * draw.uniform(2, 4));
  stage.shape("sawtooth",
              fmt::format("amplitude_bytes = {:.0f}\nperiod_s = {:.0f}\nperiod_spread = 0.2\namplitude_spread = 0.2\n"
                          "form = \"sine\"",
                          stage.free_bytes * draw.uniform(0.15, 0.6), period_s));
  stage.shape("random_walk", fmt::format("step_bytes = {:.0f}\nevery_s = {:.0f}\nhigh_bytes = {:.0f}",
                                         0.01 * stage.free_bytes, draw.uniform(30, 300), 0.06 * stage.free_bytes));
  finish(draw, trace, stage);
}

/// A render farm: a scene per frame, and shots whose scenes differ.
void render_shots(Draw& draw, Trace& trace) {
  Stage stage = stage_of(draw, "blender -b film.blend -a", some_hours(draw));
  stage.shape("sawtooth", fmt::format("amplitude_bytes = {:.0f}\nperiod_s = {:.0f}\nperiod_spread = 0.3\n"
                                      "amplitude_spread = 0.2\nform = \"square\"\nduty = {:.2f}",
                                      stage.free_bytes * draw.uniform(0.2, 0.5), draw.log_uniform(40, 600),
                                      draw.uniform(0.5, 0.9)));
  stage.shape("sawtooth", fmt::format("amplitude_bytes = {:.0f}\nperiod_s = {:.0f}\nperiod_spread = 0.5\n"
                                      "amplitude_spread = 0.5\nform = \"square\"",
                                      stage.free_bytes * draw.uniform(0.08, 0.2), draw.log_uniform(1800, 3 * 3600.0)));
  finish(draw, trace, stage);
}

/// Cameras whose streams are opened and closed, each with decoder surfaces of its own (Frigate, DeepStream).
void camera_streams(Draw& draw, Trace& trace) {
  Stage stage = stage_of(draw, "python -m frigate", some_hours(draw));
  const double stays_s = draw.log_uniform(600, draw.by_split(2.0, 4.0) * 3600);
  stage.shape("serving", fmt::format("request_bytes = {:.0f}\nrequests_per_s = {:.6f}\nservice_s = {:.0f}\n"
                                     "max_requests = 24",
                                     stage.free_bytes * 0.85 / 24, draw.uniform(5, 12) / stays_s, stays_s));
  finish(draw, trace, stage);
}

/// Reinforcement learning with its replay buffer on the card: filled step by step, then overwritten.
void replay_buffer(Draw& draw, Trace& trace) {
  const double filled_s = draw.log_uniform(1800, draw.by_split(5.0, 8.0) * 3600);
  Stage stage = stage_of(draw, "python train_sac.py", filled_s * draw.uniform(2, 6));
  const double share = draw.uniform(0.15, 0.9);
  stage.shape("warm_up", fmt::format("bytes = {:.0f}\nover_s = {:.0f}\nform = \"linear\"\nonset_s = {:.0f}",
                                     stage.free_bytes * share, filled_s, stage.load_s));
  trace.straight_share = share;
  add_batches(draw, stage, 0.03);
  finish(draw, trace, stage);
}

/// torch.compile: a graph and a private pool for every new shape, until the limit of recompilations.
void recompilations(Draw& draw, Trace& trace) {
  Stage stage = stage_of(draw, "python train_compiled.py", some_hours(draw));
  stage.shape("fragmentation", fmt::format("bytes = {:.0f}\nover_s = {:.0f}\nsteps = 8\nonset_s = {:.0f}",
                                           stage.free_bytes * draw.uniform(0.05, 0.4),
                                           draw.log_uniform(600, 0.5 * stage.duration_s), stage.load_s));
  add_batches(draw, stage, 0.06);
  finish(draw, trace, stage);
}

/// Graphs sampled by neighbourhood: the largest sample so far stays until empty_cache() at the end of the epoch.
void neighbour_sampling(Draw& draw, Trace& trace) {
  const double epoch_s = draw.log_uniform(300, draw.by_split(5400.0, 9000.0));
  Stage stage = stage_of(draw, "python train_gnn.py", epoch_s * draw.uniform(5, 20));
  stage.shape("running_max", fmt::format("typical_bytes = {:.0f}\nevery_s = {:.1f}\nsigma = 0.5\nmax_bytes = {:.0f}\n"
                                         "release_every_s = {:.0f}\nrelease_share = {:.2f}",
                                         stage.free_bytes * draw.uniform(0.08, 0.2), draw.log_uniform(1, 30),
                                         0.85 * stage.free_bytes, epoch_s, draw.uniform(0.6, 0.95)));
  finish(draw, trace, stage);
}

}  // namespace

std::span<const Family> other_healthy_families() {
  static constexpr std::array kFamilies{
      Family{"kv_cache_server", "weights, KV cache, graphs, activations", false, false, kv_cache_server, Group::others},
      Family{"longest_prompt", "what the longest prompt so far took", false, false, longest_prompt, Group::others},
      Family{"doubling_arena", "regions of twice the size, ever more rarely", false, false, doubling_arena,
             Group::others},
      Family{"sorted_first_epoch", "lengths in rising order, once", false, false, sorted_first_epoch, Group::others},
      Family{"curriculum", "longer sequences in three to six stages", false, false, curriculum, Group::others},
      Family{"image_sessions", "somebody makes images, and goes", false, false, image_sessions, Group::others},
      Family{"notebook", "cells add up until the kernel is restarted", false, false, notebook, Group::others},
      Family{"embedding_job", "a timer's job of some minutes", false, false, embedding_job, Group::others},
      Family{"preallocation", "three quarters at once", false, false, preallocation, Group::others},
      Family{"first_validation", "levels at the first step and the first validation", false, false, first_validation,
             Group::others},
      Family{"mesh_refinement", "hours up, hours down", false, false, mesh_refinement, Group::others},
      Family{"render_shots", "a scene per frame", false, false, render_shots, Group::others},
      Family{"camera_streams", "streams come and stay for hours", false, false, camera_streams, Group::others},
      Family{"replay_buffer", "straight up to its capacity", false, false, replay_buffer, Group::others},
      Family{"recompilations", "eight graphs, ever more rarely", false, false, recompilations, Group::others},
      Family{"neighbour_sampling", "the largest sample of each epoch", false, false, neighbour_sampling, Group::others},
  };
  return kFamilies;
}

}  // namespace vramtrack::accuracy
